import type { DescService } from "@bufbuild/protobuf";
import { useQuery } from "@tanstack/react-query";
import { ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import { topicKey } from "../api/query-keys.ts";
import { clientOf } from "../api/services.ts";
import { ActionBar } from "./action-bar.tsx";
import { actionOf } from "./called-action.ts";

interface RecommendedProps {
  readonly kind: string;
  readonly id: string;
  /** Whose methods are offered. */
  readonly service: DescService;
}

/** What helps a thing now, the most helpful first, as far as its own service can do it. */
export function Recommended({ kind, id, service }: RecommendedProps) {
  const { data } = useQuery({
    queryKey: topicKey(kind, "explain", id),
    queryFn: ({ signal }) => clientOf(ExplainService).explain({ kind, id }, { signal }),
    staleTime: 2_000,
  });
  const actions = data?.nextCommands.flatMap((next) => actionOf(service, next) ?? []) ?? [];
  return actions.length === 0 ? null : <ActionBar actions={actions} />;
}
