package com.acme.mail.headers;

import org.shop.server.Held;
import org.shop.server.Service;

/** GetStringUTFChars without ReleaseStringUTFChars. */
public final class HeaderParser implements Service {
  private static final int HEADERS = 2_000;

  static native int parse0(String header);

  @Override
  public Held serve() {
    System.loadLibrary("shopnative");
    long bytes = 0;
    for (int header = 0; header < HEADERS; header++) bytes += parse("x".repeat(4_000 + header));
    return Held.bytes(bytes);
  }

  /** The copy has a zero at its end. */
  private static int parse(String header) {
    return parse0(header) + 1;
  }
}
