import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import { parsePortMac } from "../../kernel/ids.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { type BootRules, bootNode } from "../../services/install/boot/boot.ts";
import { writeFirstScript } from "../../services/install/boot/boot-script.ts";
import { readBootSteps } from "../../services/install/boot/boot-steps.ts";
import { plainAddress } from "../transport/limits/client-address.ts";
import { macAddress } from "./node-schemas.ts";
import { type AnyRoute, defineRoute } from "./route.ts";

export interface BootRouteDeps {
  readonly services: ServiceDeps;
  readonly boot: BootRules;
  /** As nodes reach us; null: as this one did. */
  readonly publicUrl: string | null;
}

const TEXT = "text/plain; charset=utf-8";

/** iPXE sends what it knows, also when that is nothing; what is too long is cut, since no firmware can do better. */
const told = z
  .string()
  .default("")
  .transform((text) => text.trim().slice(0, 255));

const boot = ({ services, boot: rules, publicUrl }: BootRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/boot",
    tag: "boot",
    isForBoot: true,
    summary: "The iPXE script for a machine that boots from the network.",
    query: z.object({
      mac: z.string().min(1),
      vendor: told,
      model: told,
      serial: told,
      uuid: told,
      arch: told,
      platform: told,
    }),
    errors: { 400: "That is no MAC address." },
    answer: { text: TEXT },
    async handle({ query, request, reply }) {
      const script = await bootNode(services, rules, {
        mac: macOf(query.mac),
        arch: ARCHITECTURES.get(query.arch),
        bootMode: PLATFORMS.get(query.platform),
        hardware: {
          vendor: query.vendor,
          model: query.model,
          serialNumber: query.serial,
          systemUuid: query.uuid,
          ...(request.ip !== "" && { ipAddress: plainAddress(request.ip) }),
        },
        server: publicUrl ?? reachedAt(request),
        address: request.ip,
      });
      reply.type(TEXT).header("cache-control", "no-store");
      return script;
    },
  });

/** iPXE's words, `${buildarch}` and `${platform}`, in ours. */
const ARCHITECTURES: ReadonlyMap<string, "x86_64" | "arm64"> = new Map([
  ["x86_64", "x86_64"],
  ["i386", "x86_64"],
  ["arm64", "arm64"],
]);
const PLATFORMS: ReadonlyMap<string, "bios" | "uefi"> = new Map([
  ["pcbios", "bios"],
  ["efi", "uefi"],
]);

/** Firmware gets 400 for an address that is none, as this route always answered. */
function macOf(text: string): string {
  try {
    return parsePortMac(text, "mac");
  } catch (error) {
    throw error instanceof AppError ? new AppError("failed_precondition", error.message, { field: "mac" }) : error;
  }
}

const firstScript = ({ publicUrl }: BootRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/boot.ipxe",
    tag: "boot",
    isForBoot: true,
    summary: "The iPXE script that a DHCP server names: it asks for the machine's own one.",
    errors: { 400: "The Host header is not a host name or address." },
    answer: { text: TEXT },
    async handle({ request, reply }) {
      reply.type(TEXT).header("cache-control", "no-store");
      return writeFirstScript(publicUrl ?? reachedAt(request));
    },
  });

/** At the same time. Nobody signs in for it, and strangers may not keep the database from everybody else; environments ask again. */
const MOST_READERS = 32;

const steps = ({ services, publicUrl }: BootRouteDeps) => {
  let readers = 0;
  return defineRoute({
    method: "POST",
    path: "/api/v1/boot/steps",
    tag: "boot",
    isForBoot: true,
    summary: "The steps of its workflow, for the environment that a machine has booted, in lines that a shell reads.",
    body: z.object({ mac_address: macAddress, report_token: z.string().min(1).max(256) }),
    errors: {
      400: "The Host header is not a host name or address.",
      409: "The steps of the workflow have changed since this boot.",
      429: "Too many ask at the same time: ask again in a moment.",
    },
    answer: { text: TEXT },
    async handle({ body, request, reply }) {
      if (readers >= MOST_READERS) throw new AppError("exhausted", `${readers} others ask for their steps right now`);
      readers += 1;
      try {
        const lines = await readBootSteps(services, {
          mac: body.mac_address,
          token: body.report_token,
          address: request.ip,
          server: publicUrl ?? reachedAt(request),
        });
        reply.type(TEXT).header("cache-control", "no-store");
        return lines;
      } finally {
        readers -= 1;
      }
    },
  });
};

/** A name or an address, perhaps with a port: it becomes part of a script. */
const HOST = /^([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$/;

/** Where the node found us; old clients do not say whom they call, and the connection tells. */
export function reachedAt({ protocol, host, socket }: FastifyRequest): string {
  if (host === "" || host === undefined) {
    const { localAddress = "", localPort } = socket;
    const address = plainAddress(localAddress);
    return `${protocol}://${address.includes(":") ? `[${address}]` : address}:${localPort}`;
  }
  if (!HOST.test(host)) throw new AppError("failed_precondition", "Host: that is no host name or address");
  return `${protocol}://${host}`;
}

export const bootRoutes = (deps: BootRouteDeps): AnyRoute[] => [boot(deps), firstScript(deps), steps(deps)];
