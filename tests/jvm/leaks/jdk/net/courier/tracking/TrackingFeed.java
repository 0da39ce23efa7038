package net.courier.tracking;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.shop.server.Held;
import org.shop.server.Service;

/** GZIP input that is read half and forgotten (hudi#19861, curator#874). */
public final class TrackingFeed implements Service {
  private static final int FEEDS = 300;
  private final List<GZIPInputStream> open = new ArrayList<>();

  @Override
  public Held serve() throws IOException {
    ByteArrayOutputStream feed = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(feed)) {
      out.write(new byte[200_000]);
    }
    for (int n = 0; n < FEEDS; n++) poll(feed.toByteArray());
    return Held.objects(open.size());
  }

  private void poll(byte[] feed) throws IOException {
    GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(feed));
    open.add(in);
    in.readNBytes(50_000);
  }
}
