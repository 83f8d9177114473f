import { Menu, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { signOut } from "../api/session.ts";
import { useMe } from "./me.tsx";
import classes from "./top-bar.module.css";

const NEXT_SCHEME = { auto: "light", light: "dark", dark: "auto" } as const;
const SCHEME_WORDS = { auto: "as the system", light: "light", dark: "dark" } as const;

interface UserMenuProps {
  readonly onKeys: () => void;
  /** What the button says. */
  readonly children: string;
}

/** Who reads, the colours and the way out. It is open when it comes: somebody has pressed for it. */
export function UserMenu({ onKeys, children }: UserMenuProps) {
  const { name, roles } = useMe();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  const client = useQueryClient();
  const leave = async () => {
    await signOut();
    client.clear();
    await navigate({ to: "/sign-in" });
  };
  return (
    <Menu position="bottom-end" width={240} withinPortal defaultOpened>
      <Menu.Target>
        <UnstyledButton className={classes.user}>{children}</UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{roles.length === 0 ? "no role" : `role ${roles[0]}`}</Menu.Label>
        <Menu.Item closeMenuOnClick={false} onClick={() => setColorScheme(NEXT_SCHEME[colorScheme])}>
          Colours: {SCHEME_WORDS[colorScheme]}
        </Menu.Item>
        <Menu.Item onClick={onKeys}>Keys</Menu.Item>
        <Menu.Item component="a" href="/api/v1/docs">
          REST reference
        </Menu.Item>
        {name !== "" && <Menu.Item onClick={() => void leave()}>Sign out</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
}
