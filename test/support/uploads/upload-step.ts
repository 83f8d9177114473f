import { type ClientRequest, type IncomingMessage, request as send } from "node:http";
import { DeviceFailure } from "../../../src/capabilities/device-failure.ts";
import { type StreamCall, streamOf } from "../../../src/capabilities/stream.ts";
import { messageOf } from "../../../src/kernel/errors.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { type Duration, minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { type ActingContext, defineStepOn, type On } from "../../../src/runs/model/step.ts";
import type { Rig } from "../rigs/rig.ts";

export type UploadPayload = { readonly url: string; readonly bytes: number };
type Evidence = { readonly key: string };

/** What of a chunk the network has not taken when a process is paused leaves when it goes on: so chunks are small. */
export const CHUNK_BYTES = 64 * 1_024;
const CHUNK = Buffer.alloc(CHUNK_BYTES, "image ");

interface OnUpload extends On<Rig> {
  /** For the device to know who sends. */
  readonly replica: string;
}

/** Uploads an image in one HTTP request, as BMCs take their firmware. */
export const uploading = (kind: string, longestChunk: Duration) =>
  defineStepOn<OnUpload>()({
    kind,
    needs: [],
    defaults: { timeout: minutes(20), maxRetries: 0 },
    streams: { to: "bmc", longestChunk },
    parse: (payload) => payload as UploadPayload,
    before: async ({ runId }): Promise<Evidence> => ({ key: runId }),
    async act(context) {
      const { payload, evidence, replica, call, log } = context;
      log(`${replica} begins an upload of ${payload.bytes} bytes`);
      await upload(`${payload.url}/${evidence.key}`, payload.bytes, replica, streamOf(call));
      log(`${replica} has sent everything`);
      return undefined;
    },
    async probe(context) {
      const { bytes } = await ask(context, "GET");
      return bytes === context.payload.bytes ? { state: "done", message: "the image is there" } : "not_done";
    },
    async undo(context) {
      await ask(context, "DELETE");
      return undefined;
    },
  });

/** The longest chunk is longer than the longest call of shortened leases. */
export const uploadImage = uploading("upload_image", seconds(4));
/** The longest chunk is longer than the longest call of stock leases. */
export const uploadFirmware = uploading("upload_firmware", seconds(15));

type Acting = Pick<
  ActingContext<UploadPayload, Evidence, never, never, JsonObject, OnUpload>,
  "payload" | "evidence" | "replica" | "call"
>;

async function ask({ payload, evidence, replica, call }: Acting, method: string): Promise<{ readonly bytes: number }> {
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(call.mayTouchDevice(seconds(5)))]);
  const answer = await fetch(`${payload.url}/${evidence.key}`, { method, headers: { "x-replica": replica }, signal });
  return (await answer.json()) as { readonly bytes: number };
}

async function upload(url: string, bytes: number, replica: string, stream: StreamCall): Promise<void> {
  const headers = { "content-length": bytes, "x-replica": replica };
  const request = send(url, { method: "PUT", agent: false, headers });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve);
    request.on("error", (error) => reject(new DeviceFailure("unreachable", "bmc", messageOf(error))));
  });
  answered.catch(() => undefined); // the chunk that is being sent fails with it
  try {
    for (let sent = 0; sent < bytes; ) {
      const chunk = CHUNK.subarray(0, Math.min(CHUNK.length, bytes - sent));
      await stream.sendChunk(() => Promise.race([written(request, chunk), answered]));
      sent += chunk.length;
      stream.report({ bytes: sent, of: bytes });
    }
    const { statusCode = 0 } = await stream.sendChunk(() => {
      request.end();
      return answered;
    });
    if (statusCode !== 200) throw new DeviceFailure("refused_by_device", "bmc", `the device answered ${statusCode}`);
  } catch (error) {
    // Reset, and not closed: a connection that is closed still delivers what the network has taken.
    request.socket?.resetAndDestroy();
    request.destroy();
    throw error;
  }
}

/** Resolves once the network has taken it. */
const written = (request: ClientRequest, chunk: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    request.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
