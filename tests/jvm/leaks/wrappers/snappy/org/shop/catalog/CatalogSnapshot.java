package org.shop.catalog;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;
import org.xerial.snappy.SnappyFramedOutputStream;

/** Framed Snappy streams that are never closed: each keeps direct buffers out of the library's pool (snappy-java#91, #64). */
public final class CatalogSnapshot implements Service {
  private static final int SNAPSHOTS = 40;
  private final List<SnappyFramedOutputStream> open = new ArrayList<>();

  @Override
  public Held serve() throws IOException {
    for (int snapshot = 0; snapshot < SNAPSHOTS; snapshot++) save(new byte[100_000]);
    return Held.objects(open.size());
  }

  private void save(byte[] products) throws IOException {
    SnappyFramedOutputStream out = new SnappyFramedOutputStream(new ByteArrayOutputStream());
    open.add(out);
    out.write(products);
    out.flush();
  }
}
