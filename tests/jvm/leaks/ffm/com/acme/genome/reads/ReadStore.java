package com.acme.genome.reads;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Arenas that are never closed, and the global one. */
public final class ReadStore implements Service {
  private static final int READS = 1_000;
  private final List<MemorySegment> reads = new ArrayList<>();

  @Override
  public Held serve() {
    long bytes = 0;
    for (int read = 0; read < READS; read++) bytes += keep(read % 2 == 0 ? Arena.global() : Arena.ofShared(), 6_000 + read);
    return Held.bytes(bytes);
  }

  private long keep(Arena arena, int bytes) {
    MemorySegment read = arena.allocate(bytes, 8);
    reads.add(read);
    return read.byteSize();
  }
}
