package com.acme.search;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** A search index whose segments lie outside the Java heap. */
public final class Index {
  private static final List<ByteBuffer> segments = new ArrayList<>();
  private static final SplittableRandom random = new SplittableRandom(7);

  private Index() {}

  /** Adds segments until they hold {@code goal} bytes. Returns how much that is: {at least, at most}, the same. */
  public static long[] build(long goal) {
    long bytes = 0;
    while (bytes < goal) bytes += addSegment(segmentSize());
    return new long[] {bytes, bytes};
  }

  private static long addSegment(int size) {
    ByteBuffer segment = ByteBuffer.allocateDirect(size);
    segment.putLong(0, size);
    segments.add(segment);
    // HotSpot asks for whole words, and for nothing else.
    return (segment.capacity() + 7L) & ~7L;
  }

  // As indexes have them: many small segments, most bytes in the large ones.
  private static int segmentSize() {
    int kind = random.nextInt(100);
    if (kind < 70) return random.nextInt(100, 2000);
    if (kind < 95) return random.nextInt(2000, 32000);
    return random.nextInt(32000, 300000);
  }
}
