import { randomUUID } from "node:crypto";
import { z } from "zod";
import { issueCertificate, readRequest } from "../certificate/issued.ts";
import { type ApiCall, type ApiReply, type ApiRoute, failure, notFound, ok } from "./api-call.ts";

const REQUESTS = "/apis/certificates\\.k8s\\.io/v1/certificatesigningrequests";
const KUBELET_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet";

/** How a kubelet comes from a bootstrap token to an identity of its own. */
export const CERTIFICATE_ROUTES: readonly ApiRoute[] = [
  ["POST", new RegExp(`^${REQUESTS}$`), createRequest],
  ["GET", new RegExp(`^${REQUESTS}/([^/]+)$`), getRequest],
];

const requestSchema = z.object({
  metadata: z.object({ name: z.string().optional(), generateName: z.string().optional() }),
  spec: z.object({ request: z.base64(), signerName: z.string(), usages: z.array(z.string()).min(1) }),
});

function createRequest({ cluster, clock, user, body }: ApiCall): ApiReply {
  const read = requestSchema.safeParse(body);
  if (!read.success)
    return failure(422, `CertificateSigningRequest is invalid: ${read.error.issues[0]?.path.join(".")}`);
  const { metadata, spec } = read.data;
  const asked = readRequest(Buffer.from(spec.request, "base64").toString("utf8"));
  if (asked === undefined)
    return failure(422, "CertificateSigningRequest is invalid: spec.request: Invalid value: it is no PKCS #10 request");
  const name = metadata.name ?? `${metadata.generateName ?? "csr-"}${randomUUID().slice(0, 5)}`;
  // Others wait for somebody to approve them, which nobody here does.
  const isApproved =
    spec.signerName === KUBELET_SIGNER &&
    asked.organization === "system:nodes" &&
    asked.commonName.startsWith("system:node:") &&
    user.groups.includes("system:bootstrappers");
  const certificate = isApproved
    ? issueCertificate(cluster.certificate, asked, { publicKey: asked.publicKey, now: new Date(clock.realNow()) })
    : undefined;
  const request = {
    ...{ apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name } },
    spec: { ...spec, username: user.name, groups: user.groups },
    status: certificate && {
      conditions: [{ type: "Approved", status: "True", reason: "AutoApproved" }],
      certificate: Buffer.from(certificate).toString("base64"),
    },
  };
  cluster.requests.set(name, request);
  return { status: 201, body: { ...request, status: {} } };
}

function getRequest({ cluster, names: [name = ""] }: ApiCall): ApiReply {
  const request = cluster.requests.get(name);
  return request === undefined ? notFound("certificatesigningrequests.certificates.k8s.io", name) : ok(request);
}
