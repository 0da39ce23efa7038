package com.acme.pricing.tables;

import org.shop.server.Held;
import org.shop.server.Service;

/** A JNI library that mallocs and is never asked to free. */
public final class PriceTables implements Service {
  private static final int TABLES = 2_000;

  static native long load0(int bytes);

  @Override
  public Held serve() {
    System.loadLibrary("pricetables");
    long bytes = 0;
    for (int table = 0; table < TABLES; table++) bytes += load(4_000 + table);
    return Held.bytes(bytes);
  }

  private static long load(int bytes) {
    return load0(bytes) == 0 ? 0 : bytes;
  }
}
