package org.shop.pages;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Innocent: it loads classes, which is when agents work. */
public final class Pages implements Service {
  private static final int PAGES = 100;
  private final List<Object> pages = new ArrayList<>();

  private static final class PageLoader extends ClassLoader {}

  @Override
  public Held serve() {
    InvocationHandler empty = (proxy, method, arguments) -> null;
    for (int page = 0; page < PAGES; page++) {
      pages.add(Proxy.newProxyInstance(new PageLoader(), new Class<?>[] {Runnable.class}, empty));
    }
    return Held.objects(pages.size());
  }
}
