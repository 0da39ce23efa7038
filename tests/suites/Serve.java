import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.LogManager;
import java.util.zip.Deflater;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** A Tomcat that answers every request with what it has compressed, until its standard input ends. Its port goes into the file args[0]. */
public class Serve {
  static final AtomicLong answered = new AtomicLong();

  static class Answer extends HttpServlet {
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
      byte[] body = ("hello from " + request.getRequestURI() + " ").repeat(400).getBytes();
      Deflater deflater = new Deflater();
      deflater.setInput(body);
      deflater.finish();
      byte[] out = new byte[body.length];
      int length = deflater.deflate(out);
      deflater.end();
      ByteBuffer.allocateDirect(8192).put(out, 0, length);
      response.setContentType("application/octet-stream");
      response.setContentLength(length);
      response.getOutputStream().write(out, 0, length);
      answered.incrementAndGet();
    }
  }

  public static void main(String[] args) throws Exception {
    LogManager.getLogManager().reset();
    File base = new File(args[0]).getParentFile();
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(base.getPath());
    tomcat.setHostname("127.0.0.1");
    tomcat.setPort(0);
    tomcat.getConnector();  // makes it
    Context context = tomcat.addContext("", base.getPath());
    Tomcat.addServlet(context, "answer", new Answer());
    context.addServletMappingDecoded("/*", "answer");
    tomcat.start();
    Path ready = Path.of(args[0] + ".new");
    Files.writeString(ready, Integer.toString(tomcat.getConnector().getLocalPort()));
    Files.move(ready, Path.of(args[0]), StandardCopyOption.ATOMIC_MOVE);
    while (System.in.read() >= 0) continue;
    tomcat.stop();
    tomcat.destroy();
    System.out.println("answered " + answered.get());
  }
}
