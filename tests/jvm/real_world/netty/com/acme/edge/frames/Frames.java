package com.acme.edge.frames;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Pooled direct buffers of a current Netty that are not released. */
public final class Frames implements Service {
  private static final int FRAMES = 160;
  private final List<ByteBuf> frames = new ArrayList<>();

  @Override
  public Held serve() {
    PooledByteBufAllocator pool = PooledByteBufAllocator.DEFAULT;
    for (int frame = 0; frame < FRAMES; frame++) decode(pool);
    return Held.bytes(pool.metric().usedDirectMemory());
  }

  private void decode(PooledByteBufAllocator pool) {
    frames.add(pool.directBuffer(60_000).writeLong(1));
  }
}
