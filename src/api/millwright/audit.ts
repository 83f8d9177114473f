import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { AuditService } from "../../../contract/millwright/v1/audit_pb.js";
import { pageRefusedCalls, type RefusedCallsRow } from "../../services/audit/refused-calls.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";

const refusedCallsOf = ({ name, calls, minute, lastAt, ...row }: RefusedCallsRow) => ({
  ...row,
  who: name,
  calls: BigInt(calls),
  minute: timestampFromDate(minute),
  lastAt: timestampFromDate(lastAt),
});

export const audit = (deps: ServiceDeps): ServiceImpl<typeof AuditService> => ({
  async listRefusedCalls(request) {
    const page = await pageRefusedCalls(deps, listRequestFrom(request));
    return { refusedCalls: page.items.map(refusedCallsOf), ...pageOf(page) };
  },
});
