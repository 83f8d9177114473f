import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { TLSSocket } from "node:tls";
import type { StreamCall } from "../../../capabilities/stream.ts";
import { type Received, RequestFailed } from "../http-request.ts";
import { readText } from "../reading/read-text.ts";

/** What is sent in the place of a body: read piece by piece, and never whole in memory. */
export interface Upload {
  readonly bytes: number;
  readonly contentType: string;
  /** From the beginning, however often it is asked for. */
  chunks(): AsyncIterable<Uint8Array>;
  readonly stream: StreamCall;
}

export interface RequestedUpload {
  readonly options: RequestOptions;
  readonly isSecure: boolean;
  readonly upload: Upload;
  /** In bytes; an answer that is larger is not read to its end. */
  readonly largestAnswer: number;
}

/** What a paused process still sends when it goes on is at most one of these (decision 22). */
const CHUNK_BYTES = 64 * 1_024;

/**
 * One request whose body is sent in chunks of its stream, and its answer. A device that answers before all was sent wants no more:
 * that is its answer.
 *
 * @throws RequestFailed, or what ended the stream.
 */
export async function sendUpload({ options, isSecure, upload, largestAnswer }: RequestedUpload): Promise<Received> {
  const { stream, bytes } = upload;
  let sending: Sending | undefined;
  try {
    let sent = 0;
    for await (const chunk of piecesOf(upload.chunks())) {
      const hasAnswered = await stream.sendChunk(() => {
        sending ??= new Sending((isSecure ? httpsRequest : httpRequest)(options), largestAnswer);
        return sending.write(chunk);
      });
      sent += chunk.length;
      stream.report({ bytes: sent, of: bytes });
      if (hasAnswered) break;
      if (sent > bytes) throw new Error(`there is more to upload than the ${bytes} bytes that were announced`);
    }
    return await stream.sendChunk(() => {
      sending ??= new Sending((isSecure ? httpsRequest : httpRequest)(options), largestAnswer);
      return sending.finish();
    });
  } catch (error) {
    sending?.reset();
    throw error;
  }
}

/** Small enough, whatever the source gives. */
async function* piecesOf(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += CHUNK_BYTES) yield chunk.subarray(from, from + CHUNK_BYTES);
  }
}

/** A request that is being written. */
class Sending {
  readonly #request: ClientRequest;
  readonly #answered: Promise<Received>;
  #response: IncomingMessage | undefined;

  constructor(request: ClientRequest, largestAnswer: number) {
    this.#request = request;
    this.#answered = new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(new RequestFailed(error, false));
      // One that has answered and closes the connection under us has said what it has to say.
      request.on("error", (error) => {
        if (this.#response === undefined) fail(error);
      });
      request.on("response", (response) => {
        this.#response = response;
        const { socket, statusCode: status = 0, headers } = response;
        readText(response, largestAnswer).then((text) => resolve({ status, headers, text, socket }), fail);
      });
    });
    this.#answered.catch(() => undefined); // the chunk that is being sent fails with it
  }

  /** Resolves once the network has taken it; true: the device has answered already. */
  write(chunk: Uint8Array): Promise<boolean> {
    const written = new Promise<boolean>((resolve, reject) => {
      this.#request.write(chunk, (error) => {
        if (error) this.#answered.then(() => resolve(true), reject);
        else resolve(this.#response !== undefined);
      });
    });
    return Promise.race([written, this.#answered.then(() => true)]);
  }

  finish(): Promise<Received> {
    this.#request.end();
    return this.#answered;
  }

  /**
   * A plain connection is reset, and not closed: one that is closed still delivers what the network has taken. Node cannot reset a
   * TLS connection; what it delivers still is a part of a request that never becomes whole.
   */
  reset(): void {
    const { socket } = this.#request;
    if (socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
    this.#request.destroy();
  }
}
