"""Count, for each original, the avatars closer than its own and those within its tie bound, with numpy."""

from cloaking.kernel.index import AvatarIndex

__all__ = ["AvatarIndex"]
