import { refusedReference } from "./refused-reference.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A variable of the server's own environment, below the prefix that the operator gave free. */
export function readVariable(name: string, prefix: string, env: NodeJS.ProcessEnv): string {
  if (prefix === "") throw refusedReference("references to the environment are off", "set secrets.env_prefix");
  if (!NAME.test(name)) throw refusedReference("is no name of a variable", "such as env:BMC_PASSWORD");
  if (!name.startsWith(prefix)) throw refusedReference(`does not begin with ${prefix}`, "see secrets.env_prefix");
  const value = env[name];
  if (value === undefined || value === "")
    throw refusedReference(
      "is not set in the environment of this server",
      "set it for each replica, and start it again",
    );
  return value;
}
