import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { createCertificate } from "../../../simulator/certificate/certificate.ts";

/** Somebody who listens and writes down whatever arrives, as the operator of a machine might point us at. */
export interface AttackersSocket {
  readonly port: number;
  readonly endpoint: string;
  /** All that came: request lines, headers and bodies, with Basic sign-ins in clear beside. Empty: nobody connected. */
  received(): string;
  connections(): number;
  close(): Promise<void>;
}

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

const anything: Answer = (_, response) => {
  response.setHeader("content-type", "application/json");
  response.setHeader("x-auth-token", "t");
  response.setHeader("location", "/redfish/v1/SessionService/Sessions/1");
  response.end("{}");
};

export async function listenAsAttacker(
  options: { readonly scheme?: "https" | "http"; readonly answer?: Answer } = {},
): Promise<AttackersSocket> {
  const { scheme = "https", answer = anything } = options;
  const seen: string[] = [];
  let connections = 0;
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part: string) => {
      body += part;
    });
    request.on("end", () => {
      const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
      const clear = Buffer.from(basic, "base64").toString("utf8");
      seen.push(`${request.method} ${request.url}\n${request.rawHeaders.join("\n")}\n${clear}\n${body}`);
      answer(request, response, body);
    });
  };
  const server =
    scheme === "http"
      ? createPlainServer(serve)
      : createSecureServer(createCertificate({ addresses: ["127.0.0.1"], now: new Date() }), serve);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    endpoint: `${scheme === "http" ? "http://" : ""}127.0.0.1:${port}`,
    received: () => seen.join("\n\n"),
    connections: () => connections,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}
