/** A secret as the API keeps it: `data` is in base64. */
export interface Secret {
  readonly apiVersion: "v1";
  readonly kind: "Secret";
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly creationTimestamp: string;
  };
  readonly type: string;
  readonly data: Readonly<Record<string, string>>;
}

const BOOTSTRAP_TOKEN_TYPE = "bootstrap.kubernetes.io/token";

/** Why this secret does not let somebody in who knows `given`; undefined when it does. */
export function bootstrapTokenProblem(secret: Secret | undefined, given: string, realNow: number): string | undefined {
  const value = (key: string): string => Buffer.from(secret?.data[key] ?? "", "base64").toString("utf8");
  if (secret?.type !== BOOTSTRAP_TOKEN_TYPE || value("token-secret") !== given || given === "")
    return "couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID";
  if (value("usage-bootstrap-authentication") !== "true")
    return "couldn't validate the identity of the API Server: the token must not be used for authentication";
  const expiration = value("expiration");
  if (expiration !== "" && Date.parse(expiration) <= realNow)
    return "couldn't validate the identity of the API Server: the token has expired";
  return undefined;
}
