import { Readable } from "node:stream";
import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import {
  FIRMWARE_FILES,
  type FileListener,
  type FileRequest,
  readFirmwareFile,
} from "../../../services/rack-firmware/files.ts";
import { answerFor } from "../files.ts";
import { toRestError } from "../route.ts";

export interface FirmwareFilesDeps {
  readonly services: ServiceDeps;
  /** Whose addresses are good here. Absent: those of the listener that all share. */
  readonly listeners?: readonly FileListener[];
  readonly reportUnexpected: (cause: unknown, request: FastifyRequest) => string;
}

/** Firmware for BMCs, in ranges too. BMCs sign in nowhere: whoever has an address may fetch its one file until it expires. */
export function createFirmwareFiles({ services, listeners, reportUnexpected }: FirmwareFilesDeps): FastifyPluginAsync {
  return async (app) => {
    app.route({
      method: ["GET", "HEAD"],
      url: `${FIRMWARE_FILES}/:hex/:expires/:signature/:name`,
      handler: async (request, reply) => {
        const file = await readFirmwareFile(services, request.params as FileRequest, listeners);
        reply.header("cache-control", "no-store");
        const range = answerFor({ size: file.bytes, mtime: file.changedAt }, request, reply);
        return reply.send(range === undefined ? undefined : Readable.from(file.chunks(range)));
      },
      errorHandler: (error, request, reply) => {
        const { status, body } = toRestError(error, (cause) => reportUnexpected(cause, request));
        return reply.code(status).send(body);
      },
    });
  };
}
