"""An exported folder to the Hugging Face Hub."""

from pathlib import Path

from wtal.errors import InputError, MissingExtraError, missing_extra


def push(folder: Path, name: str, *, public: bool = False) -> str:
    """The address at which the folder's files are now.

    Args:
        folder: What `export` has written.
        name: OWNER/NAME of the repository; it is made if it is not there.
        public: Whether a repository that is made now can be seen by all.
    """
    if name.count("/") != 1 or not all(name.split("/")):
        raise InputError(f"`push` takes OWNER/NAME, got {name!r}")
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError
    except ImportError as error:
        raise missing_extra(error) or MissingExtraError("huggingface_hub", "hub") from error
    api = HfApi(library_name="wtal")
    try:
        made = api.create_repo(name, private=not public, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=str(folder), commit_message="Exported by wtal")
    except (HfHubHTTPError, HFValidationError, LocalTokenNotFoundError, OSError) as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"the Hub did not take {folder}: {why}; sign in with hf auth login, then push again"
        ) from error
    return str(made)
