import java.util.zip.Deflater;

/** Nothing but Deflater work: a native state is made, used and freed each time. Deflating COUNT */
public class Deflating {
  public static void main(String[] args) {
    byte[] text = new byte[4096], packed = new byte[8192];
    for (int i = 0; i < text.length; i++) text[i] = (byte) (i * 31 % 97);
    long bytes = 0;
    for (int i = 0; i < Integer.parseInt(args[0]); i++) {
      Deflater deflater = new Deflater();
      deflater.setInput(text);
      deflater.finish();
      bytes += deflater.deflate(packed);
      deflater.end();
    }
    System.out.println(bytes + " bytes");
  }
}
