package org.shop.search;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Innocent: it holds as much as it needs and no more. */
public final class Index implements Runnable {
  private static final int SEGMENTS = 64;
  private static final int SEGMENT_BYTES = 32 << 10;
  private final List<ByteBuffer> segments = new ArrayList<>();

  @Override
  public void run() {
    for (int segment = 0; segment < SEGMENTS; segment++) {
      segments.add(ByteBuffer.allocateDirect(SEGMENT_BYTES));
    }
  }

  public long bytes() {
    return (long) segments.size() * SEGMENT_BYTES;
  }
}
