package com.voice.codec;

import org.shop.server.Held;
import org.shop.server.Service;

/** A C library with a thread of its own; a rule names the library. */
public final class Codec implements Service {
  static native long encode0();

  @Override
  public Held serve() {
    System.loadLibrary("voicecodec");
    return Held.bytes(encode());
  }

  private static long encode() {
    return encode0();
  }
}
