package net.courier.addresses;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import org.shop.server.Held;
import org.shop.server.Service;

/** A C function called through JNA returns memory that its caller should free (leveldb-jna#2). */
public final class AddressBook implements Service {
  private static final int ADDRESSES = 1_500;

  /** Of the C library, the part that is used. */
  public interface CLibrary extends Library {
    Pointer strdup(Pointer text);
  }

  @Override
  public Held serve() {
    CLibrary c = Native.load("c", CLibrary.class);
    Memory text = new Memory(ADDRESSES + 6_000);
    text.setMemory(0, text.size(), (byte) 'x');
    long bytes = 0;
    for (int address = 0; address < ADDRESSES; address++) {
      text.setByte(5_000 + address, (byte) 0);
      bytes += look(c, text, 5_000 + address);
      text.setByte(5_000 + address, (byte) 'x');
    }
    return Held.bytes(bytes);
  }

  /** The copy has a zero at its end. */
  private static int look(CLibrary c, Memory address, int length) {
    return c.strdup(address) == null ? 0 : length + 1;
  }
}
