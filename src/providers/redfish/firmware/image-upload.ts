import { randomUUID } from "node:crypto";
import type { ImageToSend } from "../../../capabilities/rack/firmware.ts";
import type { StreamCall } from "../../../capabilities/stream.ts";
import type { Upload } from "../../transport/upload/send-upload.ts";

/** The image alone. */
export const imageUpload = (image: ImageToSend, stream: StreamCall): Upload => ({
  bytes: image.bytes,
  contentType: "application/octet-stream",
  chunks: () => image.chunks(),
  stream,
});

/** The image after what is to be done with it, as `MultipartHttpPushUri` takes it. */
export function multipartUpload(image: ImageToSend, stream: StreamCall): Upload {
  const boundary = `image-${randomUUID()}`;
  const parameters = { Targets: image.targets, "@Redfish.OperationApplyTime": "Immediate" };
  const fileName = image.name.replaceAll(/[^\w.+-]/g, "_") || "image";
  const head = Buffer.from(
    [
      `--${boundary}`,
      'Content-Disposition: form-data; name="UpdateParameters"',
      "Content-Type: application/json",
      "",
      JSON.stringify(parameters),
      `--${boundary}`,
      `Content-Disposition: form-data; name="UpdateFile"; filename="${fileName}"`,
      "Content-Type: application/octet-stream",
      "",
      "",
    ].join("\r\n"),
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    bytes: head.length + image.bytes + tail.length,
    contentType: `multipart/form-data; boundary=${boundary}`,
    async *chunks() {
      yield head;
      yield* image.chunks();
      yield tail;
    },
    stream,
  };
}
