import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { OverviewService } from "../../../contract/millwright/v1/overview_pb.js";
import { clientOf } from "../api/services.ts";
import { useListFields } from "./list-fields.ts";
import { type Completion, completionOf, filterValue } from "./suggestions.ts";

const MOST_VALUES = 10;

/** What can stand at the end of the text: fields, comparisons and values of the very list, as the server tells them. */
export function useCompletion(kind: string, text: string, isWanted: boolean): Completion {
  const { data: fields = [] } = useListFields(kind);
  const completion = completionOf(text, fields);
  const { asks } = completion;
  const { data: values = [] } = useQuery({
    queryKey: [kind, "values", asks?.field, asks?.prefix],
    queryFn: ({ signal }) => readValues(kind, asks?.field ?? "", asks?.prefix ?? "", signal),
    enabled: isWanted && asks !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
  if (asks === undefined) return completion;
  const begins = values.filter((value) => value.toLowerCase().startsWith(asks.prefix.toLowerCase()));
  return { ...completion, suggestions: begins.map((value) => ({ text: filterValue(value), doc: "" })) };
}

async function readValues(kind: string, field: string, prefix: string, signal: AbortSignal): Promise<string[]> {
  const filter = prefix === "" ? "" : `${field}^=${filterValue(prefix)}`;
  const request = { kind, filter, groupBy: [field], maxGroups: MOST_VALUES };
  const { groups } = await clientOf(OverviewService).countThings(request, { signal });
  return groups.flatMap(({ values }) => (values[0] ? [values[0]] : []));
}
