package io.fleet.pixels;

import org.shop.server.Held;
import org.shop.server.Service;

/** GetByteArrayElements without release: a copy of the array stays behind (JDK-8300117). */
public final class PixelBuffers implements Service {
  private static final int FRAMES = 800;

  static native int show0(byte[] pixels);

  @Override
  public Held serve() {
    System.loadLibrary("shopnative");
    long bytes = 0;
    for (int frame = 0; frame < FRAMES; frame++) bytes += show(new byte[10_000 + frame]);
    return Held.bytes(bytes);
  }

  private static int show(byte[] pixels) {
    return show0(pixels);
  }
}
