package com.acme.fraud.scoring;

import org.shop.server.Held;
import org.shop.server.Service;

/** A C library with a thread of its own that the JVM never meets. No rule names the library: who started its thread owns it. */
public final class FraudModel implements Service {
  static native long train0();

  @Override
  public Held serve() {
    System.loadLibrary("fraudmodel");
    return Held.bytes(train());
  }

  private static long train() {
    return train0();
  }
}
