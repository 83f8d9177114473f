import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { AuditService } from "../../../contract/millwright/v1/audit_pb.js";
import { exportJournal } from "../../services/audit/export-journal.ts";
import { pageRefusedCalls, type RefusedCallsRow } from "../../services/audit/refused-calls.ts";
import { type JournalProblem, verifyJournal } from "../../services/audit/verify-journal.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { dateFrom, timestampOf } from "../convert/fields.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";
import { eventOf } from "./event-messages.ts";

const refusedCallsOf = ({ name, calls, minute, lastAt, ...row }: RefusedCallsRow) => ({
  ...row,
  who: name,
  calls: BigInt(calls),
  minute: timestampFromDate(minute),
  lastAt: timestampFromDate(lastAt),
});

const problemOf = ({ kind, seal, sealedAt, entry }: JournalProblem) => ({
  kind,
  seal: BigInt(seal),
  ...(sealedAt && { sealedAt: timestampOf(sealedAt) }),
  ...(entry && { cursor: entry.cursor, thingKind: entry.kind, thingId: entry.id, version: BigInt(entry.version) }),
});

export const audit = (deps: ServiceDeps): ServiceImpl<typeof AuditService> => ({
  async listRefusedCalls(request) {
    const page = await pageRefusedCalls(deps, listRequestFrom(request, null));
    return { refusedCalls: page.items.map(refusedCallsOf), ...pageOf(page) };
  },
  async verifyJournal({ afterSeal, head }) {
    const page = await verifyJournal(deps, { afterSeal: Number(afterSeal), head });
    return {
      nextSeal: BigInt(page.nextSeal),
      seals: BigInt(page.seals),
      entries: BigInt(page.entries),
      removedEntries: BigInt(page.removed),
      ...(page.problem && { problem: problemOf(page.problem) }),
      ...(page.head && { head: page.head.text, sealedAt: timestampOf(page.head.sealedAt) }),
      ...(page.unsealed && { unsealedEntries: BigInt(page.unsealed.entries) }),
      ...(page.unsealed?.since && { unsealedSince: timestampOf(page.unsealed.since) }),
    };
  },
  async exportJournal({ since, until, after, pageSize }) {
    const page = await exportJournal(deps, {
      since: since ? dateFrom(since, "since") : null,
      until: until ? dateFrom(until, "until") : null,
      ...{ after, pageSize },
    });
    return { events: page.rows.map(eventOf), nextCursor: page.next, end: page.isEnd };
  },
});
