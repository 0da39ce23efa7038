package io.fleet.checksums;

import java.util.ArrayList;
import java.util.List;
import net.jpountz.xxhash.StreamingXXHash64;
import net.jpountz.xxhash.XXHashFactory;
import org.shop.server.Held;
import org.shop.server.Service;

/** Native xxHash states of lz4-java: small, many, released by nobody. */
public final class Checksums implements Service {
  private static final int FILES = 60_000;
  private static final int STATE_BYTES = 88; // sizeof(XXH64_state_t)
  private final List<StreamingXXHash64> open = new ArrayList<>();

  @Override
  public Held serve() {
    XXHashFactory factory = XXHashFactory.nativeInstance();
    for (int file = 0; file < FILES; file++) start(factory);
    return Held.bytes((long) open.size() * STATE_BYTES);
  }

  private void start(XXHashFactory factory) {
    open.add(factory.newStreamingHash64(42));
  }
}
