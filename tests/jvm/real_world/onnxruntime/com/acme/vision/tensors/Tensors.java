package com.acme.vision.tensors;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** ONNX tensors that are never closed (onnxruntime#6058, #7842). */
public final class Tensors implements Service {
  private static final int IMAGES = 150;
  private final List<OnnxTensor> open = new ArrayList<>();

  @Override
  public Held serve() throws OrtException {
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    for (int image = 0; image < IMAGES; image++) load(environment);
    return Held.objects(open.size());
  }

  private void load(OrtEnvironment environment) throws OrtException {
    open.add(OnnxTensor.createTensor(environment, new float[100][200]));
  }
}
