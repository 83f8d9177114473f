/**
 * What `kubeadm join` does, as far as a control plane can tell: it checks the cluster's authority against the hash that it was
 * given, has itself certified with the bootstrap token, and registers its node with that. Run by tests on the host of a real SSH server, as a program.
 */
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { hostname } from "node:os";
import { parse } from "yaml";
import { createRequest } from "../../../simulator/certificate/issued.ts";

const [verb, endpoint = "", ...rest] = process.argv.slice(2);
const flag = (name: string): string => rest[rest.indexOf(name) + 1] ?? "";
if (verb !== "join") fail(`unknown command ${verb}`);
const address = process.env.STAND_IN_ADDRESS ?? "127.0.0.1";

process.stdout.write("[preflight] Running pre-flight checks\n");
const info = await ask("GET", "/api/v1/namespaces/kube-public/configmaps/cluster-info");
const { kubeconfig } = (JSON.parse(info.body) as { data: { kubeconfig: string } }).data;
const { clusters } = parse(kubeconfig) as { clusters: { cluster: { "certificate-authority-data": string } }[] };
const ca = Buffer.from(clusters[0]?.cluster["certificate-authority-data"] ?? "", "base64").toString("utf8");
const caKey = new X509Certificate(ca).publicKey.export({ type: "spki", format: "der" });
const found = `sha256:${createHash("sha256").update(caKey).digest("hex")}`;
if (found !== flag("--discovery-token-ca-cert-hash")) fail("none of the public keys are pinned");

// With the token alone nobody registers: it is good for a certificate, which then names the node.
const name = process.env.STAND_IN_NODE ?? hostname().toLowerCase();
const { key: ownKey, request: signing } = createRequest({
  commonName: `system:node:${name}`,
  organization: "system:nodes",
});
const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const asked = await ask("POST", requests, {
  ca,
  token: flag("--token"),
  body: {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { generateName: "node-csr-" },
    spec: {
      request: Buffer.from(signing).toString("base64"),
      signerName: "kubernetes.io/kube-apiserver-client-kubelet",
      usages: ["digital signature", "client auth"],
    },
  },
});
if (asked.status !== 201) fail(`the API server answered ${asked.status}: ${asked.body}`);
const { metadata } = JSON.parse(asked.body) as { metadata: { name: string } };
const approved = await ask("GET", `${requests}/${metadata.name}`, { ca, token: flag("--token") });
const { status } = JSON.parse(approved.body) as { status?: { certificate?: string } };
if (status?.certificate === undefined) fail("the certificate was not issued");
const cert = Buffer.from(status?.certificate ?? "", "base64").toString("utf8");

const answer = await ask("POST", "/api/v1/nodes", {
  ca,
  certified: { cert, key: ownKey },
  body: {
    metadata: { name },
    status: {
      conditions: [{ type: "Ready", status: "True" }],
      addresses: [{ type: "InternalIP", address }],
      nodeInfo: {
        bootID: read("/proc/sys/kernel/random/boot_id"),
        machineID: read("/etc/machine-id"),
        systemUUID: read("/sys/class/dmi/id/product_uuid"),
        kubeletVersion: "v1.31.4",
      },
    },
  },
});
if (answer.status !== 201) fail(`the API server answered ${answer.status}: ${answer.body}`);
process.stdout.write("This node has joined the cluster\n");

function ask(
  method: string,
  path: string,
  how: { ca?: string; token?: string; certified?: { cert: string; key: string }; body?: unknown } = {},
): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const [host = "", port = ""] = endpoint.split(":");
  const outgoing = request(
    {
      host,
      port: Number(port),
      path,
      method,
      // As the real one: whom it speaks to is not known before the authority was checked against the hash.
      ...(how.ca === undefined ? { rejectUnauthorized: false } : { ca: how.ca }),
      ...how.certified,
      headers: how.token === undefined ? {} : { authorization: `Bearer ${how.token}` },
    },
    (incoming) => {
      let body = "";
      incoming.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, body }));
    },
  );
  outgoing.on("error", reject);
  outgoing.end(how.body === undefined ? undefined : JSON.stringify(how.body));
  return promise;
}

/** Empty where the system does not tell. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}

function fail(why: string): never {
  process.stderr.write(`error execution phase preflight: ${why}\n`);
  process.exit(1);
}
