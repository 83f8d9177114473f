import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultDataDir as ofCommandLine } from "../../src/cli/client/discover-server.ts";
import { defaultDataDir as ofServer } from "../../src/config/data-dir.ts";

/** Both say where the server's data are, and neither may import the other: what one finds, the other must. */
test("server and command line agree on the data directory, whatever user and environment", () => {
  const path = fc.oneof(
    fc.constantFrom("", "/", "/home/kim", "relative", "./x", "~", "/a/../b", "/trailing/", " ", "C:\\data"),
    fc.string().map((text) => `/${text}`),
    fc.string(),
  );
  const orNot = fc.option(path, { nil: undefined });
  const attempt = (work: () => string) => {
    try {
      return work();
    } catch {
      return "refused";
    }
  };
  fc.assert(
    fc.property(fc.constantFrom(0, 1, 1000, -1), orNot, orNot, orNot, (uid, home, state, homedir) => {
      const env = {
        ...(home !== undefined && { HOME: home }),
        ...(state !== undefined && { XDG_STATE_HOME: state }),
      };
      expect(attempt(() => ofCommandLine(env, { uid, homedir }))).toBe(
        attempt(() => ofServer({ uid, homedir: homedir ?? null, cwd: "/" }, env)),
      );
    }),
  );
});
