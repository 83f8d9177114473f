import { describe, expect, test } from "vitest";
import { Accounts, MOST_SESSIONS, SESSION_TIMEOUT_SECONDS } from "./accounts.ts";

function accountsOnTheBench() {
  let real = 0;
  const policy = { username: "root", password: "p:w", lockout: { failures: 3, seconds: 60 } };
  const accounts = new Accounts(policy, () => real);
  return {
    accounts,
    pass: (ms: number) => {
      real += ms;
    },
  };
}

const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });

describe("accounts", () => {
  test("tells the right from the wrong and from none, also with a colon in the password", () => {
    const { accounts } = accountsOnTheBench();
    expect(accounts.identify(basic("root:p:w"))).toBe("right");
    expect(accounts.identify(basic("root:p"))).toBe("wrong");
    expect(accounts.identify(basic("root"))).toBe("wrong");
    expect(accounts.identify({ authorization: "Bearer x" })).toBe("wrong");
    expect(accounts.identify({})).toBe("anonymous");
  });

  test("after too many wrong passwords the right one is refused as well, for a while", () => {
    const { accounts, pass } = accountsOnTheBench();
    for (let failure = 0; failure < 3; failure += 1) expect(accounts.check("root", "x")).toBe("wrong");
    expect(accounts.check("root", "p:w")).toBe("locked");
    pass(59_999);
    expect(accounts.check("root", "p:w")).toBe("locked");
    pass(1);
    expect(accounts.check("root", "p:w")).toBe("right");
  });

  test("a right password in between starts the count again", () => {
    const { accounts } = accountsOnTheBench();
    for (let round = 0; round < 5; round += 1) {
      accounts.check("root", "x");
      accounts.check("root", "x");
      expect(accounts.check("root", "p:w")).toBe("right");
    }
  });

  test("a session lasts as long as it is used, and no longer", () => {
    const { accounts, pass } = accountsOnTheBench();
    const session = accounts.openSession();
    const headers = { "x-auth-token": session?.token ?? "" };
    pass(SESSION_TIMEOUT_SECONDS * 1_000);
    expect(accounts.identify(headers)).toBe("right");
    pass(SESSION_TIMEOUT_SECONDS * 1_000);
    expect(accounts.identify(headers)).toBe("right");
    pass(SESSION_TIMEOUT_SECONDS * 1_000 + 1);
    expect(accounts.identify(headers)).toBe("wrong");
  });

  test("there are only so many sessions at a time", () => {
    const { accounts } = accountsOnTheBench();
    const sessions = Array.from({ length: MOST_SESSIONS }, () => accounts.openSession());
    expect(accounts.openSession()).toBeUndefined();
    accounts.closeSession(sessions[0]?.id ?? "");
    expect(accounts.openSession()).toBeDefined();
  });
});
