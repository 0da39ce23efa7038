package org.shop.events;

import org.shop.server.Held;
import org.shop.server.Service;

/** Global references that nobody deletes (jnigi#83, netty#13481): they are the JVM's blocks, held for this package. */
public final class Listeners implements Service {
  private static final int LISTENERS = 800_000;

  static native void listen0(Object listener);

  @Override
  public Held serve() {
    System.loadLibrary("shopnative");
    for (int n = 0; n < LISTENERS; n++) listen(this);
    return Held.objects(LISTENERS);
  }

  private static void listen(Object listener) {
    listen0(listener);
  }
}
