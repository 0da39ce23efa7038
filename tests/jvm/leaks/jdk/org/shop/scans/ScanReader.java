package org.shop.scans;

import java.awt.image.BufferedImage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import javax.imageio.ImageIO;
import javax.imageio.ImageReader;
import javax.imageio.stream.MemoryCacheImageInputStream;
import org.shop.server.Held;
import org.shop.server.Service;

/** JPEG readers that are never disposed: each has a decoder in native memory. */
public final class ScanReader implements Service {
  private static final int SCANS = 1_500;
  private final List<ImageReader> readers = new ArrayList<>();

  @Override
  public Held serve() throws IOException {
    ByteArrayOutputStream jpeg = new ByteArrayOutputStream();
    ImageIO.write(new BufferedImage(64, 64, BufferedImage.TYPE_INT_RGB), "jpeg", jpeg);
    for (int scan = 0; scan < SCANS; scan++) measure(jpeg.toByteArray());
    return Held.objects(readers.size());
  }

  private int measure(byte[] jpeg) throws IOException {
    ImageReader reader = ImageIO.getImageReadersByFormatName("jpeg").next();
    readers.add(reader);
    reader.setInput(new MemoryCacheImageInputStream(new ByteArrayInputStream(jpeg)));
    return reader.getHeight(0);
  }
}
