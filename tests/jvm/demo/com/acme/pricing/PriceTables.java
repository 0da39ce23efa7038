package com.acme.pricing;

/** Price tables: a C++ library behind JNI (pricing.cc). */
public final class PriceTables {
  private static final int STEPS = 64;

  static {
    System.loadLibrary("pricing");
  }

  private PriceTables() {}

  /** Loads tables until the library holds {@code goal} bytes. Returns its own count: {at least, at most}, the same. */
  public static long[] load(long goal) {
    long held = 0;
    for (int step = 1; step <= STEPS; step++) held = loadTables(goal * step / STEPS);
    return new long[] {held, held};
  }

  private static native long loadTables(long goal);
}
