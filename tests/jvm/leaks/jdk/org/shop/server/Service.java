package org.shop.server;

/** One part of the application. It works for a while, holds on to native memory, and says how much. */
public interface Service {
  Held serve() throws Throwable;
}
