package org.shop.sessions;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Unpooled direct buffers that are not released. */
public final class SessionStore implements Service {
  private static final int SESSIONS = 400;
  private final List<ByteBuf> sessions = new ArrayList<>();

  @Override
  public Held serve() {
    for (int session = 0; session < SESSIONS; session++) store(20_000 + session);
    return Held.bytes(sessions.stream().mapToLong(ByteBuf::capacity).sum());
  }

  private void store(int bytes) {
    sessions.add(UnpooledByteBufAllocator.DEFAULT.directBuffer(bytes, bytes));
  }
}
