import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/** A web service and its clients in one process: each request is unpacked, kept in direct memory for a while, packed and answered.
 *  Service REQUESTS CLIENTS -> prints requests per second and the 99th percentile of their time in microseconds, after a warm-up of a
 *  quarter of the requests. */
public class Service {
  static final ByteBuffer[] recent = new ByteBuffer[256];
  static final AtomicInteger next = new AtomicInteger();

  static byte[] packed(byte[] plain) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
      gzip.write(plain);
    }
    return out.toByteArray();
  }

  static byte[] answer(byte[] request) throws Exception {
    byte[] plain = new GZIPInputStream(new ByteArrayInputStream(request)).readAllBytes();
    ByteBuffer kept = ByteBuffer.allocateDirect(plain.length);
    kept.put(plain);
    recent[next.getAndIncrement() & 255] = kept;
    Arrays.sort(plain);
    return packed(plain);
  }

  public static void main(String[] args) throws Exception {
    int requests = Integer.parseInt(args[0]), clients = Integer.parseInt(args[1]);
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 100);
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.createContext("/", exchange -> {
      try (InputStream in = exchange.getRequestBody()) {
        byte[] body = answer(in.readAllBytes());
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
      } catch (Exception failed) {
        throw new IllegalStateException(failed);
      } finally {
        exchange.close();
      }
    });
    server.start();
    byte[] text = new byte[2048];
    for (int i = 0; i < text.length; i++) text[i] = (byte) ('a' + i * 7 % 26);
    byte[] body = packed(text);
    URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
    long[] times = new long[requests];
    AtomicInteger done = new AtomicInteger();
    long[] measuredFrom = {0};
    Thread[] threads = new Thread[clients];
    for (int c = 0; c < clients; c++) {
      threads[c] = new Thread(() -> {
        try {
          for (int number; (number = done.getAndIncrement()) < requests;) {
            if (number == requests / 4) measuredFrom[0] = System.nanoTime();
            long begin = System.nanoTime();
            HttpURLConnection connection = (HttpURLConnection) uri.toURL().openConnection();
            connection.setDoOutput(true);
            connection.getOutputStream().write(body);
            try (InputStream in = connection.getInputStream()) {
              in.readAllBytes();
            }
            times[number] = System.nanoTime() - begin;
          }
        } catch (Exception failed) {
          failed.printStackTrace();
          System.exit(1);
        }
      });
      threads[c].start();
    }
    for (Thread thread : threads) thread.join();
    double seconds = (System.nanoTime() - measuredFrom[0]) / 1e9;
    long[] measured = Arrays.copyOfRange(times, requests / 4, requests);
    Arrays.sort(measured);
    System.out.printf("%.1f %.1f%n", measured.length / seconds, measured[measured.length * 99 / 100] / 1e3);
    server.stop(0);
    System.exit(0);
  }
}
