package org.shop.export;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.shop.server.Held;
import org.shop.server.Service;

/** GZIP output that is finished but not closed (curator#874, grizzly#1863). */
public final class CsvExport implements Service {
  private static final int FILES = 40;
  private final List<GZIPOutputStream> open = new ArrayList<>();

  @Override
  public Held serve() throws IOException {
    for (int file = 0; file < FILES; file++) export(file);
    return Held.objects(open.size());
  }

  private void export(int file) throws IOException {
    GZIPOutputStream out = new GZIPOutputStream(new ByteArrayOutputStream());
    open.add(out);
    for (int row = 0; row < 100; row++) out.write((file + ";" + row + "\n").getBytes(StandardCharsets.UTF_8));
    out.finish();
  }
}
