package org.shop.server;

import org.shop.cart.Carts;
import org.shop.search.Index;

/**
 * Starts the service named by the argument beside the parts of the shop that have nothing to hide, and prints what each holds.
 *
 * <p>It is the outermost frame of the leaking stacks and has an owner of its own, so memory whose inner frames were lost is charged
 * here, where the test sees it.
 */
public final class Launcher {
  private static Service service; // what it holds stays reachable

  private Launcher() {}

  public static void main(String[] arguments) throws Throwable {
    Index index = new Index();
    Thread indexer = new Thread(index, "search-indexer");
    Thread carts = new Thread(new Carts(), "carts");
    indexer.start();
    carts.start();
    service = (Service) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
    Held held = service.serve();
    indexer.join();
    carts.join();
    System.out.println("TRUTH module=" + service.getClass().getPackageName() + " " + held);
    System.out.println("TRUTH module=org.shop.search live_bytes=" + index.bytes());
    System.exit(0); // a service's threads may wait for ever
  }
}
