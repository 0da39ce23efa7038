"""Fetches the jars of one library with Maven, as its settings say (mirrors, proxies), into a directory that keeps them.

CADASTRE_MAVEN_REPOSITORY, if set, is the URL of a repository to use instead of the default one.
"""
import glob
import os
import shutil
import subprocess
import xml.sax.saxutils

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
FETCH_TIMEOUT = 420  # seconds; the largest jar has 100 MB


class Unreachable(Exception):
    """No repository answers, or there is no Maven: nothing else will be fetched either."""


class NotServed(Exception):
    """This artifact is not to be had."""


def pom(artifacts):
    """A project that depends on exactly these (GROUP:ARTIFACT:VERSION[:CLASSIFIER]), without what they depend on."""
    dependencies = ""
    for artifact in artifacts:
        group, name, version, *classifier = artifact.split(":")
        dependencies += f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        dependencies += f"<classifier>{classifier[0]}</classifier>" if classifier else ""
        dependencies += "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
    repository = xml.sax.saxutils.escape(os.environ.get("CADASTRE_MAVEN_REPOSITORY", ""))
    central = f"<id>central</id><url>{repository}</url>"
    repositories = f"<repositories><repository>{central}</repository></repositories>" if repository else ""
    repositories += f"<pluginRepositories><pluginRepository>{central}</pluginRepository></pluginRepositories>" if repository else ""
    return ("<project><modelVersion>4.0.0</modelVersion><groupId>cadastre</groupId><artifactId>real-world</artifactId><version>1</version>"
            f"{repositories}<dependencies>{dependencies}</dependencies></project>\n")


def fetch(artifacts, directory):
    """The paths of the jars, from `directory` if they were fetched before."""
    done = os.path.join(directory, "complete")
    if not os.path.exists(done):
        maven = shutil.which("mvn")
        if not maven:
            raise Unreachable("mvn is not installed")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        with open(os.path.join(directory, "pom.xml"), "w", encoding="utf-8") as file:
            file.write(pom(artifacts))
        try:
            command = [maven, "-B", "-q", "-f", os.path.join(directory, "pom.xml"), PLUGIN, f"-DoutputDirectory={directory}"]
            result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    timeout=FETCH_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Unreachable(f"no answer within {FETCH_TIMEOUT} s") from None
        if result.returncode != 0:
            reason = next((line for line in result.stdout.splitlines() if "ERROR" in line), result.stdout)[:400]
            # "Could not find" is a repository's answer; whoever cannot be asked is not there.
            raise (NotServed if "Could not find artifact" in result.stdout else Unreachable)(reason)
        with open(done, "w", encoding="utf-8"):
            pass
    return sorted(glob.glob(os.path.join(directory, "*.jar")))
