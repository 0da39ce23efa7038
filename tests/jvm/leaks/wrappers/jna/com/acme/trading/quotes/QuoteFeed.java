package com.acme.trading.quotes;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Pointer;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** JNA callbacks that stay registered. */
public final class QuoteFeed implements Service {
  private static final int SUBSCRIPTIONS = 16_000;
  private final List<Object> kept = new ArrayList<>();

  /** What the library would call. */
  public interface OnQuote extends Callback {
    int quote(Pointer symbol, double price, long time);
  }

  @Override
  public Held serve() {
    for (int n = 0; n < SUBSCRIPTIONS; n++) subscribe();
    return Held.objects(SUBSCRIPTIONS);
  }

  private void subscribe() {
    OnQuote callback =
        new OnQuote() {
          @Override
          public int quote(Pointer symbol, double price, long time) {
            return 0;
          }
        };
    kept.add(callback);
    kept.add(CallbackReference.getFunctionPointer(callback));
  }
}
