package com.acme.rules.engine;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** A class and a class loader per evaluated rule, all kept (initializr#288, orca#3760). */
public final class RuleCompiler implements Service {
  private static final int RULES = 1_200;
  private final List<Object> compiled = new ArrayList<>();

  /** What a rule looks like when it is compiled. */
  public static final class Rule implements Runnable {
    @Override
    public void run() {}
  }

  private static final class RuleLoader extends ClassLoader {
    private final byte[] code;

    RuleLoader(byte[] code) {
      super(RuleCompiler.class.getClassLoader());
      this.code = code;
    }

    Class<?> define() {
      return defineClass(null, code, 0, code.length);
    }
  }

  @Override
  public Held serve() throws IOException, ReflectiveOperationException {
    byte[] code;
    try (InputStream in = RuleCompiler.class.getResourceAsStream("RuleCompiler$Rule.class")) {
      code = in.readAllBytes();
    }
    for (int rule = 0; rule < RULES; rule++) evaluate(code);
    return Held.objects(compiled.size());
  }

  private void evaluate(byte[] code) throws ReflectiveOperationException {
    Runnable rule = (Runnable) new RuleLoader(code).define().getDeclaredConstructor().newInstance();
    compiled.add(rule);
    rule.run();
  }
}
