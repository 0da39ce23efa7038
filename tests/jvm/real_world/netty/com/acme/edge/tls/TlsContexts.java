package com.acme.edge.tls;

import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLException;
import org.shop.server.Held;
import org.shop.server.Service;

/** A BoringSSL context per connection, released by nobody (netty#10397, #5380, netty-tcnative#788). */
public final class TlsContexts implements Service {
  private static final int CONNECTIONS = 500;
  private final List<SslContext> contexts = new ArrayList<>();

  @Override
  public Held serve() throws SSLException {
    for (int connection = 0; connection < CONNECTIONS; connection++) connect();
    return Held.objects(contexts.size());
  }

  private void connect() throws SSLException {
    contexts.add(SslContextBuilder.forClient().sslProvider(SslProvider.OPENSSL_REFCNT).build());
  }
}
