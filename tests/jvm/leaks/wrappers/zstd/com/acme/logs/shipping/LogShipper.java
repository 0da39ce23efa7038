package com.acme.logs.shipping;

import com.github.luben.zstd.ZstdOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Zstandard streams that are flushed and never closed: an encoder context each (jetty#14028). */
public final class LogShipper implements Service {
  private static final int BATCHES = 24;
  private final List<ZstdOutputStream> open = new ArrayList<>();

  @Override
  public Held serve() throws IOException {
    for (int batch = 0; batch < BATCHES; batch++) ship(new byte[40_000]);
    return Held.objects(open.size());
  }

  private void ship(byte[] lines) throws IOException {
    ZstdOutputStream out = new ZstdOutputStream(new ByteArrayOutputStream(), 1);
    open.add(out);
    out.write(lines);
    out.flush();
  }
}
