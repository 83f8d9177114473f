import * as vitest from "vitest";

type Work = () => unknown;

/** What the tests of a file, or of a group in it, share. */
interface Shared {
  readonly open: Work[];
  readonly close: Work[];
}

const sharedIn = new Map<object, Shared>();
/** From the file's to that of the innermost group. */
const opened: Shared[] = [];

/** The longest that a hook may take in any of these files: to close and open everything is as much work as several of them. */
const RENEWED_WITHIN_MS = 300_000;

/**
 * As vitest's, for tests that may be tried again: a second try would find what the first has left, and would fail of that. Before
 * it everything is closed and opened anew.
 */
export function beforeAll(open: Work, timeout?: number): void {
  sharedHere().open.push(open);
  vitest.beforeAll(async () => void (await open()), timeout);
}

/** The same, for the end. */
export function afterAll(close: Work, timeout?: number): void {
  sharedHere().close.unshift(close);
  vitest.afterAll(async () => void (await close()), timeout);
}

function sharedHere(): Shared {
  const group = vitest.TestRunner.getCurrentSuite();
  const known = sharedIn.get(group);
  if (known) return known;
  const shared: Shared = { open: [], close: [] };
  sharedIn.set(group, shared);
  vitest.beforeAll(() => void opened.push(shared));
  vitest.afterAll(() => void opened.splice(opened.indexOf(shared), 1));
  vitest.beforeEach(async ({ task }) => {
    if (opened[0] === shared && isSecondTry(task)) await renewAll(task);
  }, RENEWED_WITHIN_MS);
  return shared;
}

const isSecondTry = ({ result }: vitest.TestContext["task"]): boolean =>
  (result?.retryCount ?? 0) > 0 || (result?.repeatCount ?? 0) > 0;

async function renewAll({ concurrent, name }: vitest.TestContext["task"]): Promise<void> {
  if (concurrent) throw new Error(`"${name}" is tried again while others use what it shares with them`);
  for (const { close } of opened.toReversed()) for (const each of close) await each();
  for (const { open } of opened) for (const each of open) await each();
}
