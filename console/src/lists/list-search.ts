import { useNavigate, useSearch } from "@tanstack/react-router";

/** The filter, the order and the groups of a list, kept in the address: every view is a link. */
export function useListSearch() {
  const search = useSearch({ strict: false }) as Readonly<Record<string, string | undefined>>;
  const navigate = useNavigate();
  const set = (change: Readonly<Record<string, string>>) =>
    void navigate({ search: { ...search, ...change } as never, replace: true });
  return {
    filter: search.filter ?? "",
    orderBy: search.order ?? "",
    group: search.group ?? "",
    /** The groups that are open, by their values. */
    open: (search.open ?? "").split(",").flatMap(nameFromAddress),
    setFilter: (filter: string) => set({ filter }),
    setOrder: (order: string) => set({ order }),
    setGroup: (group: string) => set({ group, open: "" }),
    setOpen: (open: readonly string[]) => set({ open: open.map(nameInAddress).join(",") }),
    show: ({ filter, orderBy, group }: ListView) => set({ filter, order: orderBy, group, open: "" }),
  };
}

export interface ListView {
  readonly filter: string;
  readonly orderBy: string;
  readonly group: string;
}

/** What has no value is a group, too. */
export const NO_VALUE = "(none)";
const nameInAddress = (value: string): string => encodeURIComponent(value);

/** Addresses are typed by people, too. */
function nameFromAddress(text: string): readonly string[] {
  try {
    return text === "" ? [] : [decodeURIComponent(text)];
  } catch {
    return [];
  }
}
