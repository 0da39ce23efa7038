package io.fleet.config;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.shop.server.Held;
import org.shop.server.Service;

/** Streams of jar entries, opened by URL and left open: each has an Inflater (snappy-java#131, owlapi#986). */
public final class Templates implements Service {
  private static final int VEHICLES = 300;
  private final List<InputStream> open = new ArrayList<>();

  @Override
  public Held serve() throws IOException {
    Path jar = Files.createTempFile("templates", ".jar");
    try {
      try (OutputStream file = Files.newOutputStream(jar);
          ZipOutputStream zip = new ZipOutputStream(file)) {
        zip.putNextEntry(new ZipEntry("vehicle.template"));
        zip.write(new byte[100_000]);
      }
      URL template = new URL("jar:" + jar.toUri() + "!/vehicle.template");
      for (int vehicle = 0; vehicle < VEHICLES; vehicle++) render(template);
    } finally {
      Files.delete(jar);
    }
    return Held.objects(open.size());
  }

  private void render(URL template) throws IOException {
    InputStream in = template.openStream();
    open.add(in);
    in.readNBytes(50_000);
  }
}
