import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { Caller } from "../transport/device-answer.ts";

/**
 * How one signs in, told by the user name of the machine's BMC credentials: `none` for an Ironic that asks nobody (its password
 * is not sent anywhere), `token` for one behind Keystone, with a token as the password, and every other name for HTTP basic.
 */
const WITHOUT = "none";
const BY_TOKEN = "token";

export interface SignIn extends Caller {
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the requests carry a secret. */
  readonly signsIn: boolean;
}

export function signInOf({ username, password }: Pick<BmcTarget, "username" | "password">): SignIn {
  if (username === WITHOUT) return { headers: {}, signsIn: false, as: "callers without credentials", showing: "" };
  if (username === BY_TOKEN)
    return { headers: { "x-auth-token": password }, signsIn: true, as: "the given token", showing: "" };
  const basic = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
  return {
    headers: { authorization: `Basic ${basic}` },
    signsIn: true,
    as: `user ${username}`,
    showing: " with the given password",
  };
}
