import { Readable } from "node:stream";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createBootHolds } from "../../services/install/boot-holds.ts";
import type { ReportDesk } from "../../services/install/reports.ts";
import { noMediaInUse, type OpenedMedium, openSeededMedium } from "../../services/install/seeded-media.ts";
import { noteInstallerSeen, readSeed, type SeedRequest, type SeedScope } from "../../services/install/seeds.ts";
import { reachedAt } from "./boot.ts";
import { answerFor } from "./files.ts";
import { toRestError } from "./route.ts";

export interface SeedRouteDeps {
  readonly services: ServiceDeps;
  readonly reports: ReportDesk;
  /** As BMCs and nodes reach us; null: as this one did. */
  readonly publicUrl: string | null;
  /** Whose seeds are here. Absent: everybody's. */
  readonly scope?: SeedScope;
  readonly reportUnexpected: (cause: unknown, request: FastifyRequest) => string;
}

interface Params {
  readonly place: string;
  readonly key: string;
  readonly file: string;
}

const LARGEST_REPORT = 64 * 1_024;

/** What installers are told, for BMCs that insert it as a medium and for installers that read it over the network. */
export function createSeeds(deps: SeedRouteDeps): FastifyPluginAsync {
  const { services, reports, publicUrl, scope, reportUnexpected } = deps;
  const asked = (request: FastifyRequest): SeedRequest & Params => {
    const params = request.params as Params;
    return { ...params, address: request.ip, server: publicUrl ?? reachedAt(request) };
  };
  const media = noMediaInUse();
  const holds = createBootHolds();
  return async (app) => {
    // Installers post forms, JSON or nothing: that they do is all that counts.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: LARGEST_REPORT }, (_, __, done) => done(null));
    app.setErrorHandler((error, request, reply) => {
      const { status, body } = toRestError(error, (cause) => reportUnexpected(cause, request));
      return reply.code(status).send(body);
    });
    app.route({
      method: ["GET", "HEAD"],
      url: "/seeds/:place/:key/:file",
      handler: async (request, reply) => {
        const gone = signalOf(reply);
        const wanted = { ...asked(request), ...(scope && { scope }) };
        const opened = await openSeededMedium(services, media, wanted);
        reply.header("cache-control", "no-store");
        if (opened !== undefined) return sendMedium(opened, { request, reply, gone });
        const { content, at } = await readSeed(services, reports, {
          ...wanted,
          onlyLooks: request.method === "HEAD",
        });
        const bytes = answerFor({ size: content.length, mtime: at }, request, reply);
        return reply.send(bytes === undefined ? undefined : content.subarray(bytes.start, bytes.end + 1));
      },
    });
    // Of any installation: the installer is on the machine's network, whoever has read its medium.
    app.post("/seeds/:place/:key/phone-home", async (request, reply) => {
      await noteInstallerSeen(services, holds, asked(request), signalOf(reply));
      return reply.code(204).send();
    });
  };
}

/** Aborted when the caller goes, or was answered. Ask for it before anything is awaited: a caller who went is not told again. */
function signalOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

interface Asking {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly gone: AbortSignal;
}

/** As the bytes are read: at no time more than a few of them are here. A reader who goes ends the reading. */
function sendMedium(opened: OpenedMedium, { request, reply, gone }: Asking): FastifyReply {
  // Nobody is there to be answered.
  if (gone.aborted) return reply.hijack();
  const bytes = answerFor({ size: opened.bytes, mtime: opened.at }, request, reply);
  if (bytes === undefined) return reply.send();
  return reply.send(Readable.from(opened.read(bytes, gone), { objectMode: false, highWaterMark: 65_536 }));
}
