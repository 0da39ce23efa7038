package net.courier.labels;

import org.shop.server.Held;
import org.shop.server.Service;

/** A JNI function that ends in a jump to malloc, so its library is in no frame: only the Java frames say who it was. */
public final class LabelPrinter implements Service {
  private static final int LABELS = 4_000;

  static native long render0(int bytes);

  @Override
  public Held serve() {
    System.loadLibrary("labels");
    long bytes = 0;
    for (int label = 0; label < LABELS; label++) bytes += print(2_000 + label % 500);
    return Held.bytes(bytes);
  }

  private static long print(int bytes) {
    return render0(bytes) == 0 ? 0 : bytes;
  }
}
