package org.geotiles;

/** Somebody else's map tiles, with a C library behind JNI (geotiles.cc). No rule names either. */
public final class TileCache {
  private static final int STEPS = 64;

  static {
    System.loadLibrary("geotiles");
  }

  private TileCache() {}

  /** Reads tiles until the library holds {@code goal} bytes. Returns its own count: {at least, at most}, the same. */
  public static long[] warmUp(long goal) {
    long held = 0;
    for (int step = 1; step <= STEPS; step++) held = readTiles(goal * step / STEPS);
    return new long[] {held, held};
  }

  private static native long readTiles(long goal);
}
